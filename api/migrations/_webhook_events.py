"""The triggers that write the deliveries of an event in the transaction of the event.

The pipeline does not know the API, so no code of the pipeline announces an event: the database
does, for every writer of the three status columns. An event commits with its deliveries, or
neither does. The events are those of `api.webhooks.events` of this migration; a test compares both.
"""

CREATE = """
CREATE FUNCTION webhook_event_is_noted(
  event text, record_owner text, subject uuid, state text, code text)
RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  event_id uuid := gen_random_uuid();
BEGIN
  -- The lock keeps the endpoint until the commit: the foreign key is checked only there, and a
  -- deletion in between would fail the transaction of the event.
  INSERT INTO public.api_webhook_deliveries
    (endpoint_id, event_id, event_type, subject_id, subject_status, subject_code, occurred_at)
  SELECT e.id, event_id, event, subject, state, code, clock_timestamp()
  FROM public.api_webhook_endpoints e JOIN public.api_clients c ON c.id = e.client_id
  WHERE event = ANY (e.events) AND e.disabled_at IS NULL
    AND (record_owner IS NULL OR record_owner = 'user:' || c.user_id)
  FOR KEY SHARE OF e;
END $$;

CREATE FUNCTION job_end_is_noted() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM public.webhook_event_is_noted('record.' || NEW.status, f.owner, f.id, NEW.status,
    CASE WHEN NEW.status IN ('failed', 'dead') THEN NEW.error_code END)
  FROM public.shell_files f WHERE f.id = NEW.shell_file_id AND f.owner LIKE 'user:%';
  RETURN NULL;
END $$;

CREATE FUNCTION review_end_is_noted() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM public.webhook_event_is_noted('review.closed', f.owner, f.id, NEW.status, NULL)
  FROM public.shell_files f WHERE f.id = NEW.shell_file_id AND f.owner LIKE 'user:%';
  RETURN NULL;
END $$;

CREATE FUNCTION incident_is_noted() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM public.webhook_event_is_noted(
    CASE NEW.state WHEN 'open' THEN 'incident.opened' ELSE 'incident.closed' END,
    NULL, NEW.id, NEW.state, NEW.kind);
  RETURN NULL;
END $$;

REVOKE ALL ON FUNCTION job_end_is_noted(), review_end_is_noted(), incident_is_noted() FROM PUBLIC;

CREATE TRIGGER job_end_is_noted AFTER UPDATE OF status ON job_queue FOR EACH ROW
  WHEN (OLD.status IS DISTINCT FROM NEW.status
    AND NEW.status IN ('completed', 'failed', 'dead', 'cancelled'))
  EXECUTE FUNCTION job_end_is_noted();
CREATE TRIGGER review_end_is_noted AFTER UPDATE OF status ON review_items FOR EACH ROW
  WHEN (OLD.status IS DISTINCT FROM NEW.status AND NEW.status = 'closed')
  EXECUTE FUNCTION review_end_is_noted();
CREATE TRIGGER incident_opening_is_noted AFTER INSERT ON incidents FOR EACH ROW
  WHEN (NEW.state = 'open') EXECUTE FUNCTION incident_is_noted();
CREATE TRIGGER incident_end_is_noted AFTER UPDATE OF state ON incidents FOR EACH ROW
  WHEN (OLD.state IS DISTINCT FROM NEW.state AND NEW.state = 'closed')
  EXECUTE FUNCTION incident_is_noted();
"""

DROP = """
DROP TRIGGER incident_end_is_noted ON incidents;
DROP TRIGGER incident_opening_is_noted ON incidents;
DROP TRIGGER review_end_is_noted ON review_items;
DROP TRIGGER job_end_is_noted ON job_queue;
DROP FUNCTION incident_is_noted(), review_end_is_noted(), job_end_is_noted();
DROP FUNCTION webhook_event_is_noted(text, text, uuid, text, text);
"""
