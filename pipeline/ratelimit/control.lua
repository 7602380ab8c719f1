-- Control verbs of operators, incidents and steps:
--   'pause'    stops all starts;
--   'align'    applies exactly this pause and quota closure;
--   'rearm'    restores the holds and the window after Redis was empty, and returns 1 only for the first asker;
--   'late'     moves a call that left later than the guard allows into the current bucket, and returns that bucket;
--   'leave'    gives up the place of a job that asks no more;
--   'abandon'  forgets limited items that will not ask again;
--   'started'  removes limited items that started while Redis was away.
-- Each verb returns 1 otherwise.
local verb = text()
local answer = 1
if verb == 'pause' then
  set('paused', 1)
elseif verb == 'align' then
  local closed_until, is_paused = number(), number() == 1
  local was_held = is_set('paused') or num('closed_until') > now
  set('paused', is_paused and 1 or '')
  set('closed_until', closed_until)
  if not is_paused and closed_until <= now then
    if was_held then
      begin_ramp()
    end
    -- The places in the line are older than the hold: no job must wait for jobs that may be gone.
    redis.call('DEL', LINE, LINE_UNTIL)
  end
elseif verb == 'rearm' then
  local outage_since, closed_until, is_paused = number(), number(), number() == 1
  local knows_calls, is_calm = number() == 1, number() == 1
  answer = is_set('armed') and 0 or 1
  if answer == 1 then
    if knows_calls then
      forget_window()
      while argument < #ARGV do
        local age, requests, tokens = number(), number(), number()
        book(now - age, requests, tokens)
      end
      if is_calm then
        set('ramp_from', '')
      end
    end
    if outage_since > 0 and not is_breaker_open() then
      trip_breaker(outage_since)
    end
    if closed_until > now then
      set('closed_until', math.max(num('closed_until'), closed_until))
    end
    if is_paused then
      set('paused', 1)
    end
    set('armed', 1)
  end
elseif verb == 'leave' then
  local job = text()
  redis.call('ZREM', LINE, job)
  redis.call('HDEL', LINE_UNTIL, job)
elseif verb == 'late' then
  local bucket, tokens = text(), number()
  if redis.call('HEXISTS', WINDOW, bucket .. 'r') == 1 then
    redis.call('HINCRBY', WINDOW, bucket .. 'r', -1)
    redis.call('HINCRBY', WINDOW, bucket .. 't', string.format('%.0f', 0 - tokens)) -- Redis refuses '-0'
    set('requests', num('requests') - 1)
    set('tokens', num('tokens') - tokens)
  end
  answer = book(now, 1, tokens)
else
  while argument < #ARGV do
    if redis.call('ZREM', LIMITED, text()) == 1 and verb == 'started' then
      count('rate_limited_items_redistributed')
    end
  end
end
save()
return answer
