-- An operator's or an incident's hand on the gate: 'pause', 'resume', 'rearm' or 'abandon'.
local verb = text()
if verb == 'pause' then
  set('paused', text())
elseif verb == 'resume' then
  if is_set('paused') or num('closed_until') > now then
    begin_ramp()
  end
  set('paused', '')
  set('closed_until', 0)
  redis.call('DEL', LINE, LINE_UNTIL)
elseif verb == 'rearm' then
  local failing_since, closed_until, reason = number(), number(), text()
  if not is_set('armed') then
    if failing_since > 0 and not is_set('open_since') then
      open_breaker(failing_since)
    end
    if closed_until > now then
      set('closed_until', math.max(num('closed_until'), closed_until))
    end
    if reason ~= '' then
      set('paused', reason)
    end
    set('armed', 1)
  end
else
  while argument < #ARGV do
    redis.call('SREM', PARKED, text())
  end
end
save()
return 1
