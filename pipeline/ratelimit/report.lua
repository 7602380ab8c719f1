-- Take in the outcome of a call: 'ok', 'failed', 'limited', 'quota' or 'unknown'. Returns {role, seconds until the
-- limiter may open, first_failure of an open breaker}. The role is 'coordinator' or 'participant' of a cooldown, or ''.
local ticket, bucket, version, item, kind = text(), text(), text(), text(), text()
local reserved, estimate, generation, epoch = number(), number(), number(), number()
local actual, hint = number(), number() -- -1: not known

-- Only the first report within the lease corrects the window. Later the bucket may be gone, or already corrected; the
-- reservation then stays booked.
local is_first = redis.call('ZREM', LEASES, ticket) == 1

-- The mean of the first fifty calls; afterwards an exponential mean, so that it follows slow changes.
local function learn()
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

if is_first and actual >= 0 then
  if redis.call('HEXISTS', WINDOW, bucket .. 't') == 1 then
    redis.call('HINCRBY', WINDOW, bucket .. 't', string.format('%.0f', actual - reserved))
    set('tokens', num('tokens') + actual - reserved)
  end
  if estimate > 0 and actual > 0 then
    learn()
  end
end

-- Under full load, the calls that succeeded in the last seconds are as many as the calls that fail in the same time.
-- The whole window alone would therefore show an outage only after half its length. The last fifth of the window is
-- also judged by itself.
local SLOTS, RECENT = 20, 4

local function is_down(failures, calls)
  return failures >= cfg.breaker_failures and failures >= cfg.breaker_share * calls
end

local function feed_breaker()
  local current = math.floor(now / cfg.breaker_window * SLOTS)
  local prefix = string.format('%.0f', current)
  if kind == 'failed' then
    redis.call('HSETNX', OUTCOMES, prefix .. ' first', string.format('%.6f', now))
  end
  redis.call('HINCRBY', OUTCOMES, prefix .. ' ' .. kind, 1)
  local kept = redis.call('HGETALL', OUTCOMES)
  local failures, calls, first_failure, recent_failures, recent_calls = 0, 0, now, 0, 0
  for i = 1, #kept, 2 do
    local slot, what = string.match(kept[i], '^(%d+) (%a+)$')
    local age, value = current - tonumber(slot), tonumber(kept[i + 1])
    if age >= SLOTS then
      redis.call('HDEL', OUTCOMES, kept[i])
    elseif what == 'first' then
      first_failure = math.min(first_failure, value)
    else
      local failed = what == 'failed' and value or 0
      failures, calls = failures + failed, calls + value
      if age < RECENT then
        recent_failures, recent_calls = recent_failures + failed, recent_calls + value
      end
    end
  end
  if is_down(failures, calls) or is_down(recent_failures, recent_calls) then
    open_breaker(first_failure)
  end
end

-- Only a probe carries the epoch of an open breaker. A call that began earlier says nothing about now.
local role = ''
local is_current = epoch >= num('epoch')
if is_set('open_since') then
  local has_answered = kind == 'ok' or kind == 'limited' or kind == 'quota'
  if is_current and has_answered then
    close_breaker()
  elseif st.probe_ticket == ticket then
    set('probe_ticket', '')
    set('probe_at', now + cfg.probe)
  end
elseif is_current and is_first and (kind == 'ok' or kind == 'failed') then
  feed_breaker()
end

-- An emptied Redis has forgotten its generations, so a ticket can be newer than the state. The exponent is capped to
-- stay finite.
local function cool_down()
  set('generation', math.max(generation, num('generation')) + 1)
  local is_quiet = now - num('until') > cfg.quiet
  set('consecutive', is_quiet and 1 or num('consecutive') + 1)
  local backoff = cfg.cooldown_base * 2 ^ math.min(num('consecutive') - 1, 30)
  set('until', now + math.max(hint, math.min(backoff, cfg.cooldown_cap)))
  begin_ramp()
end

if kind == 'limited' then
  -- Drop expired entries: an item whose worker died and whose job has ended never asks again.
  redis.call('ZREMRANGEBYSCORE', PARKED, '-inf', now)
  if item ~= '' and redis.call('ZADD', PARKED, 'NX', now + PARKED_TTL_S, item) == 1 then
    redis.call('EXPIRE', PARKED, PARKED_TTL_S)
    count('rate_limited_items_stored')
  end
  -- Only the first 429 of a generation sets the cooldown. The 429s of calls that started before it are its echoes, and
  -- must not prolong it.
  if generation >= num('generation') and num('until') <= now then
    role = 'coordinator'
    count('rate_limit_generations')
    cool_down()
  else
    role = 'participant'
    count('rate_limit_participants')
    -- Cooldowns do not nest, but a cooldown lasts until the latest hint of the server.
    if num('until') > now and now + hint > num('until') then
      set('until', now + hint)
    end
  end
elseif kind == 'quota' then
  set('closed_until', math.max(num('closed_until'), now + hint))
  begin_ramp()
end
save()

local opens = math.max(num('until'), num('closed_until'))
if is_set('open_since') then
  opens = math.max(opens, num('probe_at'))
end
return {role, string.format('%.6f', math.max(opens - now, 0)), st.first_failure or ''}
