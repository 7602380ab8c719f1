-- The one clock of the gate: Redis's own, in seconds.
local function clock()
  local time = redis.call('TIME')
  return tonumber(time[1]) + tonumber(time[2]) / 1000000
end
