-- Take in the outcomes of calls: 'ok', 'failed', 'limited', 'quota' or 'unknown'. Returns {role, seconds until calls
-- may start again, first_failure of an open breaker}, for the last of them. The role is 'coordinator' or
-- 'participant' of a cooldown, or ''.

-- The mean of the first fifty calls; afterwards an exponential mean, so that it follows slow changes.
local function learn(version, estimate, actual)
  local ratio, deviation, calls = ratio_of(version)
  local seen = math.min(math.max(actual / estimate, 0.1), 10)
  if ratio then
    calls = math.min(calls + 1, 50)
    deviation = deviation + (math.abs(seen - ratio) - deviation) / calls
    ratio = ratio + (seen - ratio) / calls
  else
    ratio, deviation, calls = seen, 0, 1
  end
  redis.call('HSET', RATIOS, version, string.format('%.6f %.6f %d', ratio, deviation, calls))
  redis.call('EXPIRE', RATIOS, RATIO_TTL_S)
end

-- An emptied Redis has forgotten its generations, so a ticket can be newer than the state. The exponent is capped to
-- stay finite.
local function cool_down(generation, hint)
  set('generation', math.max(generation, num('generation')) + 1)
  local is_quiet = now - num('until') > cfg.quiet
  set('consecutive', is_quiet and 1 or num('consecutive') + 1)
  local backoff = cfg.cooldown_base * 2 ^ math.min(num('consecutive') - 1, 30)
  set('until', now + math.max(hint, math.min(backoff, cfg.cooldown_cap)))
  begin_ramp()
end

local function limited(item, generation, hint)
  -- Drop expired entries: an item whose worker died and whose job has ended never asks again.
  redis.call('ZREMRANGEBYSCORE', LIMITED, '-inf', now)
  if item ~= '' and redis.call('ZADD', LIMITED, 'NX', now + LIMITED_TTL_S, item) == 1 then
    redis.call('EXPIRE', LIMITED, LIMITED_TTL_S)
    count('rate_limited_items_stored')
  end
  -- Only the first 429 of a generation sets the cooldown. The 429s of calls that started before it are its echoes, and
  -- must not prolong it.
  if generation >= num('generation') and num('until') <= now then
    count('rate_limit_generations')
    cool_down(generation, hint)
    return 'coordinator'
  end
  count('rate_limit_participants')
  -- Cooldowns do not nest, but a cooldown lasts until the latest hint of the server.
  if num('until') > now and now + hint > num('until') then
    set('until', now + hint)
  end
  return 'participant'
end

local role
while argument < #ARGV do
  local ticket, bucket, version, item, kind = text(), text(), text(), text(), text()
  local reserved, estimate, generation, epoch = number(), number(), number(), number()
  local actual, hint = number(), number() -- -1: not known
  -- Only the first report within the lease corrects the window. Later the bucket may be gone, or already corrected; the
  -- reservation then stays booked.
  local is_first = redis.call('ZREM', LEASES, ticket) == 1
  if is_first and actual >= 0 then
    if redis.call('HEXISTS', WINDOW, bucket .. 't') == 1 then
      redis.call('HINCRBY', WINDOW, bucket .. 't', string.format('%.0f', actual - reserved))
      set('tokens', num('tokens') + actual - reserved)
    end
    if estimate > 0 and actual > 0 then
      learn(version, estimate, actual)
    end
  end
  local start = tonumber(bucket) -- nil for a call that started while Redis was away
  heed_breaker(ticket, epoch, kind, is_first, start and start * BUCKET_S)
  role = ''
  if kind == 'limited' then
    role = limited(item, generation, hint)
  elseif kind == 'quota' then
    set('closed_until', math.max(num('closed_until'), now + hint))
    begin_ramp()
  end
end
save()

local starts_at = math.max(num('until'), num('closed_until'))
if is_breaker_open() then
  starts_at = math.max(starts_at, num('probe_at'))
end
return {role, string.format('%.6f', math.max(starts_at - now, 0)), st.first_failure or ''}
