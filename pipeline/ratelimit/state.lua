-- Return the state as a flat list of names and values.
redis.call('ZREMRANGEBYSCORE', LEASES, '-inf', string.format('%.6f', now))
save()
local shown = redis.call('HGETALL', STATE)
local more = {
  now = string.format('%.6f', now),
  in_flight = redis.call('ZCARD', LEASES),
  limited_items = redis.call('ZCOUNT', LIMITED, string.format('(%.6f', now), '+inf'),
  waiting_jobs = redis.call('ZCARD', LINE),
}
for name, value in pairs(more) do
  shown[#shown + 1] = name
  shown[#shown + 1] = tostring(value)
end
return shown
