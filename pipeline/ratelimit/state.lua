-- Return the state as a flat list of names and values.
redis.call('ZREMRANGEBYSCORE', LEASES, '-inf', string.format('%.6f', now))
-- A job that ended, or that did not ask again by its time, waits no longer. `admit.lua` forgets such a job only
-- when the next job asks.
local waiting = 0
for _, job in ipairs(redis.call('ZRANGE', LINE, 0, -1)) do
  if (tonumber(redis.call('HGET', LINE_UNTIL, job)) or 0) >= now then
    waiting = waiting + 1
  else
    redis.call('ZREM', LINE, job)
    redis.call('HDEL', LINE_UNTIL, job)
  end
end
save()
local shown = redis.call('HGETALL', STATE)
local more = {
  now = string.format('%.6f', now),
  in_flight = redis.call('ZCARD', LEASES),
  limited_items = redis.call('ZCOUNT', LIMITED, string.format('(%.6f', now), '+inf'),
  waiting_jobs = waiting,
}
for name, value in pairs(more) do
  shown[#shown + 1] = name
  shown[#shown + 1] = tostring(value)
end
return shown
