-- The only clock of the rate limiter: Redis's own, in seconds, because the hosts' clocks differ.
local function clock()
  local time = redis.call('TIME')
  return tonumber(time[1]) + tonumber(time[2]) / 1000000
end
