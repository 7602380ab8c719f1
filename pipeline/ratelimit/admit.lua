-- Decide on the next starts of one job for the whole cluster: which of the calls start now, and when to ask again
-- for the first of the others. Returns {number of starts, generation, epoch}, then bucket, tokens, is_probe and
-- redistributed for each start, and then, if a call must wait, seconds, why and first_failure of an open breaker.
local job, version = text(), text()
local owed_requests, owed_tokens = number(), number()

-- Calls that this process started while Redis was away have used the quota too.
if owed_requests > 0 then
  book(now, owed_requests, owed_tokens)
  set('day_calls', num('day_calls') + owed_requests)
end

-- Estimates err in both directions. So each call in flight reserves its part of a common margin: three standard errors
-- of the sum of all calls in flight. A standard deviation is 1.25 mean deviations.
local ratio, deviation = ratio_of(version)
local function reserved(estimate)
  if not ratio then
    return math.ceil(estimate)
  end
  local margin = math.min(3 * 1.25 / math.sqrt(redis.call('ZCARD', LEASES) + 1), 2)
  return math.ceil(estimate * (ratio + margin * deviation))
end

-- Whole milliseconds, rounded up: an ask that arrives a moment too early would be refused again.
local function later(seconds, why)
  local told = math.max(math.ceil(seconds * 1000 + 0.01), 1) / 1000
  return {string.format('%.3f', told), why, st.first_failure or ''}
end

-- A job that was told a time and did not ask again by then loses its place in the line.
local function first_in_line()
  while true do
    local first = redis.call('ZRANGE', LINE, 0, 0, 'WITHSCORES')
    if not first[1] or first[1] == job
      or (tonumber(redis.call('HGET', LINE_UNTIL, first[1])) or 0) >= now then
      return first[1], tonumber(first[2])
    end
    redis.call('ZREM', LINE, first[1])
    redis.call('HDEL', LINE_UNTIL, first[1])
  end
end

-- Virtual time: the service that a job has had, in seconds of the quota. A job that was away starts level with the last
-- job served, so that it cannot save up service. A job in line keeps its place.
local function place_of_job(first, first_tag)
  if first == job then
    return first_tag, true
  end
  local kept = first and tonumber(redis.call('ZSCORE', LINE, job))
  if kept then
    return kept, true
  end
  return math.max(num('served'), tonumber(redis.call('ZSCORE', SERVED, job)) or 0), false
end

local function ramp_wait()
  if not is_set('ramp_from') or st.ramp_from == '0' then
    return 0
  end
  local elapsed = (now - num('ramp_from')) / cfg.ramp_step
  local step = math.floor(elapsed)
  if step > 60 then
    set('ramp_from', '')
    return 0
  end
  local limit, is_over = ramp_limit(step)
  if is_over then
    set('ramp_from', '')
    return 0
  end
  -- Step 0 begins with a start. In later steps the first start waits for its share of the step. Otherwise a second
  -- that begins with a start, and spans two steps, could hold more starts than the larger step allows.
  local starts = step == num('ramp_step') and num('ramp_starts') or 0
  local due = step + (step == 0 and starts or starts + 1) / limit
  if starts >= limit then
    due = step + 1 + 1 / ramp_limit(step + 1)
  end
  return (due - elapsed) * cfg.ramp_step
end

local function requests_wait()
  if cfg.requests == 0 or num('requests') + 1 <= cfg.requests then
    return 0
  end
  return left_in(is_set('oldest') and st.oldest or math.floor(now / BUCKET_S))
end

-- A reported call may free tokens earlier than its bucket expires, so no wait exceeds cfg.poll.
local function tokens_wait(tokens)
  -- A call larger than the whole quota starts only in an empty window.
  local needed = num('tokens') + math.min(tokens, cfg.tokens) - cfg.tokens
  if cfg.tokens == 0 or needed <= 0 then
    return 0
  end
  local from = 0
  while true do
    local buckets = redis.call('LRANGE', BUCKETS, from, from + 15)
    for _, bucket in ipairs(buckets) do
      local wait = left_in(bucket)
      needed = needed - (tonumber(redis.call('HGET', WINDOW, bucket .. 't')) or 0)
      if needed <= 0 or wait >= cfg.poll then
        return math.min(wait, cfg.poll)
      end
    end
    if #buckets == 0 then
      return cfg.poll
    end
    from = from + 16
  end
end

-- Return the refusal of a call, or nil with the job's virtual time and whether the job waits in the line.
local function refusal(tokens)
  -- Redis was emptied, and the holds that applied before are only in the database. The first asker restores them,
  -- and no call starts before that.
  if cfg.arms == 1 and not is_set('armed') then
    return later(0, 'new')
  end
  if is_set('paused') then
    return later(cfg.poll, 'paused')
  end
  if num('closed_until') > now then
    return later(num('closed_until') - now, 'quota')
  end
  if cfg.per_day > 0 and num('day_calls') >= cfg.per_day then
    return later(num('day_ends') - now, 'day')
  end

  -- While the breaker is open, only a probe call starts.
  local until_probe = probe_wait()
  if until_probe then
    return later(until_probe, 'breaker')
  end
  if num('until') > now then
    return later(num('until') - now, 'cooldown')
  end

  local wait, why = ramp_wait(), 'ramp'
  local by_requests, by_tokens = requests_wait(), tokens_wait(tokens)
  if by_requests > wait then
    wait, why = by_requests, 'requests'
  end
  if by_tokens > wait then
    wait, why = by_tokens, 'tokens'
  end
  -- Fairness: while a job that was served less is in line, another job waits even if the quota has room.
  local first, first_tag = first_in_line()
  local tag, is_in_line = place_of_job(first, first_tag)
  if first and first ~= job and first_tag < tag - 1e-9 then
    local before = redis.call('ZCOUNT', LINE, '-inf', string.format('(%.17g', tag))
    wait = math.max(wait, 0) + TURN_S * math.min(before, 10)
    why = 'turn'
  end
  if wait > 0 then
    redis.call('ZADD', LINE, 'NX', string.format('%.17g', tag), job)
    redis.call('HSET', LINE_UNTIL, job, string.format('%.6f', now + wait + cfg.patience))
    return later(wait, why)
  end
  return nil, tag, is_in_line
end

local function begin(ticket, item, tokens, tag, is_in_line)
  local bucket, is_new = book(now, 1, tokens)
  local cost = math.max(
    cfg.requests > 0 and cfg.window / cfg.requests or 0,
    cfg.tokens > 0 and tokens * cfg.window / cfg.tokens or 0
  )
  if tag > num('served') then
    set('served', string.format('%.17g', tag))
  end
  redis.call('ZADD', SERVED, string.format('%.17g', tag + (cost > 0 and cost or 1)), job)
  if is_in_line then
    redis.call('ZREM', LINE, job)
    redis.call('HDEL', LINE_UNTIL, job)
  end
  if is_new then
    -- Clean up once per new bucket; that is often enough to keep these sets small.
    redis.call('ZREMRANGEBYSCORE', SERVED, '-inf', string.format('%.17g', num('served')))
    redis.call('ZREMRANGEBYSCORE', LEASES, '-inf', string.format('%.6f', now))
  end

  if st.ramp_from == '0' then
    set('ramp_from', now)
    set('ramp_step', 0)
    set('ramp_starts', 1)
  elseif is_set('ramp_from') then
    local step = math.floor((now - num('ramp_from')) / cfg.ramp_step)
    set('ramp_starts', step == num('ramp_step') and num('ramp_starts') + 1 or 1)
    set('ramp_step', step)
  end
  local is_probe = is_breaker_open()
  if is_probe then
    begin_probe(ticket)
  end
  set('day_calls', num('day_calls') + 1)
  redis.call('ZADD', LEASES, string.format('%.6f', now + cfg.lease), ticket)
  local redistributed = item ~= '' and redis.call('ZREM', LIMITED, item) or 0
  if redistributed == 1 then
    count('rate_limited_items_redistributed')
  end
  return bucket, is_probe and 1 or 0, redistributed
end

local starts, answer = 0, {0, num('generation'), num('epoch')}
while argument < #ARGV do
  local ticket, item, estimate = text(), text(), number()
  local tokens = reserved(estimate)
  local refused, tag, is_in_line = refusal(tokens)
  if refused then
    for _, value in ipairs(refused) do
      answer[#answer + 1] = value
    end
    break
  end
  local bucket, is_probe, redistributed = begin(ticket, item, tokens, tag, is_in_line)
  for _, value in ipairs({bucket, tokens, is_probe, redistributed}) do
    answer[#answer + 1] = value
  end
  starts = starts + 1
end
answer[1] = starts
save()
return answer
