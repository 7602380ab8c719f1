"""The triggers that keep what reviewers decided, for every writer; see docs/review.md.

A decided entity (`verdict` is not NULL) changes only in the transaction that has stored a decision
about the same field with the same new value. No trigger compares with a copy: the value is in the
entity, and the decision names it. TRUNCATE and DELETE are covered too. A record that is erased
takes its decisions along, because its row is gone when the triggers of its children run.
"""

from __future__ import annotations

# The functions that write `locked_fields` run with the rights of their owner, because the
# application role only reads that table. A caller's search_path could replace their tables, so the
# path is fixed. A caller's own table could carry a trigger, so no caller may attach one.
CREATE = """
CREATE FUNCTION review_decision_is_stamped() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  item public.review_items;
  entity public.pass1_entity_detections;
  origin uuid;
BEGIN
  NEW.created_at := clock_timestamp();
  NEW.transaction_no := pg_current_xact_id()::text::bigint;
  SELECT * INTO item FROM public.review_items WHERE id = NEW.review_item_id;
  NEW.shell_file_id := item.shell_file_id;
  NEW.round := item.round;
  IF NEW.action = 'reopen' THEN
    IF item.status <> 'closed' THEN
      RAISE EXCEPTION 'only a closed review is reopened' USING ERRCODE = 'insufficient_privilege';
    END IF;
  ELSIF item.status <> 'open' OR item.claimed_by IS DISTINCT FROM NEW.decided_by
      OR coalesce(item.claimed_until <= clock_timestamp(), true) THEN
    RAISE EXCEPTION 'only the holder of a review item decides'
      USING ERRCODE = 'insufficient_privilege';
  END IF;
  IF NEW.entity_id IS NULL THEN
    RETURN NEW;
  END IF;
  SELECT * INTO entity FROM public.pass1_entity_detections WHERE id = NEW.entity_id;
  IF NOT FOUND THEN
    IF NEW.action <> 'add' OR NOT EXISTS (SELECT FROM public.healthcare_encounters
        WHERE id = NEW.healthcare_encounter_id AND shell_file_id = NEW.shell_file_id) THEN
      RAISE EXCEPTION 'the record of the review has no such entity'
        USING ERRCODE = 'foreign_key_violation';
    END IF;
    RETURN NEW;
  END IF;
  IF entity.shell_file_id <> NEW.shell_file_id THEN
    RAISE EXCEPTION 'the record of the review has no such entity'
      USING ERRCODE = 'foreign_key_violation';
  END IF;
  -- A moved entity keeps the encounter in which it was found: there a later extraction finds it.
  SELECT healthcare_encounter_id INTO origin FROM public.locked_fields
  WHERE entity_id = NEW.entity_id LIMIT 1;
  NEW.healthcare_encounter_id := coalesce(origin, entity.healthcare_encounter_id);
  NEW.category := entity.category;
  NEW.page_number := entity.page_number;
  NEW.char_start := entity.char_start;
  NEW.char_end := entity.char_end;
  NEW.engine := entity.engine;
  NEW.rule := coalesce(entity.rule, '');
  RETURN NEW;
END $$;

CREATE FUNCTION review_decision_locks_its_field() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF TG_RELID <> 'public.review_decisions'::regclass THEN
    RAISE EXCEPTION 'only review_decisions locks fields' USING ERRCODE = 'insufficient_privilege';
  END IF;
  -- An opinion of the second round changes nothing.
  IF NEW.entity_id IS NOT NULL AND split_part(NEW.field, '.', 1) <> 'opinion' THEN
    INSERT INTO public.locked_fields AS l (shell_file_id, healthcare_encounter_id, category,
      page_number, char_start, char_end, field, entity_id, decision_id)
    VALUES (NEW.shell_file_id, NEW.healthcare_encounter_id, NEW.category, NEW.page_number,
      NEW.char_start, NEW.char_end, NEW.field, NEW.entity_id, NEW.id)
    ON CONFLICT (entity_id, field) DO UPDATE SET decision_id = EXCLUDED.decision_id;
  END IF;
  RETURN NULL;
END $$;

CREATE FUNCTION review_row_is_append_only() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  -- The record is erased, and its decisions with it.
  IF TG_OP = 'DELETE' THEN
    IF NOT EXISTS (SELECT FROM public.shell_files WHERE id = OLD.shell_file_id) THEN
      RETURN OLD;
    END IF;
  END IF;
  RAISE EXCEPTION '% is append-only: % refused', TG_TABLE_NAME, TG_OP
    USING ERRCODE = 'insufficient_privilege';
END $$;

CREATE FUNCTION locked_field_is_kept() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  -- Depth 1 is a statement of a client; the triggers of the other tables write at depth 2.
  IF pg_trigger_depth() > 1 THEN
    RETURN CASE TG_OP WHEN 'DELETE' THEN OLD ELSE NEW END;
  END IF;
  RAISE EXCEPTION 'locked_fields is written by review_decisions alone: % refused', TG_OP
    USING ERRCODE = 'insufficient_privilege';
END $$;

CREATE FUNCTION truncate_is_refused_after_a_review() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF EXISTS (SELECT FROM public.locked_fields) THEN
    RAISE EXCEPTION '% holds reviewed entities: TRUNCATE refused', TG_TABLE_NAME
      USING ERRCODE = 'insufficient_privilege';
  END IF;
  RETURN NULL;
END $$;

CREATE FUNCTION is_decided_now(entity uuid, field text, value jsonb) RETURNS boolean
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT EXISTS (
    SELECT FROM public.review_decisions d
    WHERE d.entity_id = $1 AND d.field = $2
      AND d.transaction_no = pg_current_xact_id()::text::bigint AND d.created_at >= now()
      AND nullif(d.new_value, 'null') IS NOT DISTINCT FROM nullif($3, 'null'))
$$;

CREATE FUNCTION reviewed_entity_is_kept() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  -- The place in the list and the totals of the pass say nothing about the patient; the check
  -- constraint ties `accepted` to the verdict; `historical` is generated.
  technical text[] := ARRAY['pass1_metrics_id', 'entity_index', 'accepted', 'historical'];
  name text;
BEGIN
  FOR name IN
    SELECT is_now.key FROM jsonb_each(to_jsonb(NEW) - technical) is_now
    JOIN jsonb_each(to_jsonb(OLD) - technical) was USING (key)
    WHERE is_now.value IS DISTINCT FROM was.value
  LOOP
    IF NOT public.is_decided_now(OLD.id, name, to_jsonb(NEW) -> name) THEN
      RAISE EXCEPTION 'a reviewer decided about entity %: % is locked', OLD.id, name
        USING ERRCODE = 'insufficient_privilege';
    END IF;
  END LOOP;
  RETURN NEW;
END $$;

CREATE FUNCTION reviewed_entity_is_not_deleted() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF TG_RELID <> 'public.pass1_entity_detections'::regclass THEN
    RAISE EXCEPTION 'only entities are kept' USING ERRCODE = 'insufficient_privilege';
  END IF;
  IF NOT EXISTS (SELECT FROM public.shell_files WHERE id = OLD.shell_file_id) THEN
    RETURN OLD;
  END IF;
  IF NOT EXISTS (SELECT FROM public.healthcare_encounters WHERE id = OLD.healthcare_encounter_id)
      OR NOT EXISTS (SELECT FROM public.ai_processing_sessions
        WHERE id = OLD.processing_session_id) THEN
    RAISE EXCEPTION 'a reviewer decided about entity %: its encounter cannot be deleted', OLD.id
      USING ERRCODE = 'insufficient_privilege';
  END IF;
  -- The row stays. The mark goes when a later extraction finds the entity again.
  UPDATE public.locked_fields SET unmatched_at = clock_timestamp()
  WHERE entity_id = OLD.id AND unmatched_at IS NULL;
  RETURN NULL;
END $$;

CREATE FUNCTION found_entity_meets_its_review() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  known uuid;
  is_unmatched boolean;
BEGIN
  IF TG_RELID <> 'public.pass1_entity_detections'::regclass THEN
    RAISE EXCEPTION 'only entities are found' USING ERRCODE = 'insufficient_privilege';
  END IF;
  IF NEW.verdict IS NOT NULL THEN
    IF NOT public.is_decided_now(NEW.id, 'verdict', to_jsonb(NEW.verdict)) THEN
      RAISE EXCEPTION 'entity % has a verdict without a decision', NEW.id
        USING ERRCODE = 'insufficient_privilege';
    END IF;
    RETURN NEW;
  END IF;
  IF NOT EXISTS (SELECT FROM public.locked_fields
      WHERE healthcare_encounter_id = NEW.healthcare_encounter_id) THEN
    RETURN NEW;
  END IF;
  SELECT l.entity_id, l.unmatched_at IS NOT NULL INTO known, is_unmatched
  FROM public.locked_fields l JOIN public.pass1_entity_detections e ON e.id = l.entity_id
  WHERE l.healthcare_encounter_id = NEW.healthcare_encounter_id AND l.category = NEW.category
    AND l.page_number = NEW.page_number
    AND l.char_start IS NOT DISTINCT FROM NEW.char_start
    AND l.char_end IS NOT DISTINCT FROM NEW.char_end
    -- Entities without a place share it; their words tell them apart.
    AND (l.char_start IS NOT NULL OR e.quote = NEW.quote) AND e.id <> NEW.id
  ORDER BY l.unmatched_at IS NULL, (e.name = NEW.name) DESC, e.entity_index LIMIT 1;
  IF known IS NOT NULL AND is_unmatched THEN
    -- The extraction finds the entity again: the reviewed row stays, and no second row appears.
    UPDATE public.locked_fields SET unmatched_at = NULL WHERE entity_id = known;
    RETURN NULL;
  END IF;
  -- A later extraction can quote more or fewer words, or take another category for the same words.
  IF known IS NOT NULL OR EXISTS (
      SELECT FROM public.locked_fields l JOIN public.pass1_entity_detections e ON e.id = l.entity_id
      WHERE l.healthcare_encounter_id = NEW.healthcare_encounter_id
        AND l.page_number = NEW.page_number AND e.id <> NEW.id
        AND l.char_start < NEW.char_end AND l.char_end > NEW.char_start
        AND (l.category = NEW.category OR lower(e.name) = lower(NEW.name))) THEN
    -- Another reading of a place that a person decided about is for a person.
    NEW.accepted := false;
    NEW.review_flags := NEW.review_flags || '["reviewed_place"]'::jsonb;
  END IF;
  -- A kept row makes room for the new order of the text.
  UPDATE public.pass1_entity_detections SET entity_index = -1 - entity_index
  WHERE healthcare_encounter_id = NEW.healthcare_encounter_id
    AND entity_index = NEW.entity_index AND verdict IS NOT NULL AND id <> NEW.id;
  RETURN NEW;
END $$;

CREATE FUNCTION reviewed_attributes_are_kept() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  decided text;
  name text;
BEGIN
  SELECT verdict INTO decided FROM public.pass1_entity_detections WHERE id = OLD.entity_id;
  IF decided IS NULL THEN
    RETURN NEW;
  END IF;
  FOR name IN
    SELECT key FROM jsonb_each(coalesce(NEW.attributes, '{}')) is_now
    FULL JOIN jsonb_each(OLD.attributes) was USING (key)
    WHERE is_now.value IS DISTINCT FROM was.value
  LOOP
    IF NOT public.is_decided_now(OLD.entity_id, 'attributes.' || name, NEW.attributes -> name) THEN
      RAISE EXCEPTION 'a reviewer decided about entity %: % is locked', OLD.entity_id, name
        USING ERRCODE = 'insufficient_privilege';
    END IF;
  END LOOP;
  IF (NEW.code_system, NEW.code, NEW.code_display)
      IS DISTINCT FROM (OLD.code_system, OLD.code, OLD.code_display)
      AND NOT public.is_decided_now(OLD.entity_id, 'code', CASE WHEN NEW.code IS NOT NULL THEN
        jsonb_build_object('system', NEW.code_system, 'code', NEW.code, 'display',
          NEW.code_display) END) THEN
    RAISE EXCEPTION 'a reviewer decided about entity %: its code is locked', OLD.entity_id
      USING ERRCODE = 'insufficient_privilege';
  END IF;
  IF NEW.healthcare_encounter_id <> OLD.healthcare_encounter_id AND NOT public.is_decided_now(
      OLD.entity_id, 'healthcare_encounter_id', to_jsonb(NEW.healthcare_encounter_id))
      OR (NEW.id, NEW.entity_id, NEW.shell_file_id, NEW.patient_id, NEW.category, NEW.flags)
        IS DISTINCT FROM
        (OLD.id, OLD.entity_id, OLD.shell_file_id, OLD.patient_id, OLD.category, OLD.flags) THEN
    RAISE EXCEPTION 'a reviewer decided about entity %: its attributes are locked', OLD.entity_id
      USING ERRCODE = 'insufficient_privilege';
  END IF;
  RETURN NEW;
END $$;

CREATE FUNCTION reviewed_attributes_are_not_deleted() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF EXISTS (SELECT FROM public.pass1_entity_detections
      WHERE id = OLD.entity_id AND verdict IS NOT NULL)
      AND EXISTS (SELECT FROM public.shell_files WHERE id = OLD.shell_file_id) THEN
    RETURN NULL;
  END IF;
  RETURN OLD;
END $$;

-- Attributes of Pass 2 for an entity that a person decided about before Pass 2 ran, or runs again.
CREATE FUNCTION found_attributes_meet_their_review() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  entity public.pass1_entity_detections;
  locked record;
  derived jsonb := {derived};
  name text;
BEGIN
  SELECT * INTO entity FROM public.pass1_entity_detections WHERE id = NEW.entity_id;
  IF entity.verdict IS NULL THEN
    RETURN NEW;
  END IF;
  IF EXISTS (SELECT FROM public.pass2_enriched_entities WHERE entity_id = NEW.entity_id) THEN
    RETURN NULL;
  END IF;
  NEW.healthcare_encounter_id := entity.healthcare_encounter_id;
  FOR locked IN
    SELECT field FROM public.locked_fields
    WHERE entity_id = NEW.entity_id AND (derived ? field)
  LOOP
    -- The reading of the page contradicts the reviewer, so its value is left out and flagged.
    FOR name IN SELECT jsonb_array_elements_text(derived -> locked.field) LOOP
      NEW.attributes := NEW.attributes - name;
    END LOOP;
    IF locked.field = 'name' THEN
      NEW.code := NULL; NEW.code_system := NULL; NEW.code_display := NULL;
    END IF;
    NEW.flags := NEW.flags || jsonb_build_array('reviewed:' || locked.field);
  END LOOP;
  RETURN NEW;
END $$;

REVOKE ALL ON FUNCTION review_decision_is_stamped(), review_decision_locks_its_field(),
  review_row_is_append_only(), locked_field_is_kept(), truncate_is_refused_after_a_review(),
  reviewed_entity_is_kept(), reviewed_entity_is_not_deleted(), found_entity_meets_its_review(),
  reviewed_attributes_are_kept(), reviewed_attributes_are_not_deleted(),
  found_attributes_meet_their_review() FROM PUBLIC;

CREATE TRIGGER review_decision_is_stamped BEFORE INSERT ON review_decisions
  FOR EACH ROW EXECUTE FUNCTION review_decision_is_stamped();
CREATE TRIGGER review_decision_locks_its_field AFTER INSERT ON review_decisions
  FOR EACH ROW EXECUTE FUNCTION review_decision_locks_its_field();
CREATE TRIGGER review_decisions_are_append_only BEFORE UPDATE OR DELETE ON review_decisions
  FOR EACH ROW EXECUTE FUNCTION review_row_is_append_only();
CREATE TRIGGER review_decisions_are_not_truncated BEFORE TRUNCATE ON review_decisions
  FOR EACH STATEMENT EXECUTE FUNCTION review_row_is_append_only();
CREATE TRIGGER locked_field_is_kept BEFORE INSERT OR UPDATE OR DELETE ON locked_fields
  FOR EACH ROW EXECUTE FUNCTION locked_field_is_kept();
CREATE TRIGGER locked_fields_are_not_truncated BEFORE TRUNCATE ON locked_fields
  FOR EACH STATEMENT EXECUTE FUNCTION truncate_is_refused_after_a_review();
CREATE TRIGGER reviewed_entity_is_kept BEFORE UPDATE ON pass1_entity_detections
  FOR EACH ROW WHEN (OLD.verdict IS NOT NULL OR NEW.verdict IS NOT NULL)
  EXECUTE FUNCTION reviewed_entity_is_kept();
CREATE TRIGGER reviewed_entity_is_not_deleted BEFORE DELETE ON pass1_entity_detections
  FOR EACH ROW WHEN (OLD.verdict IS NOT NULL) EXECUTE FUNCTION reviewed_entity_is_not_deleted();
CREATE TRIGGER found_entity_meets_its_review BEFORE INSERT ON pass1_entity_detections
  FOR EACH ROW EXECUTE FUNCTION found_entity_meets_its_review();
CREATE TRIGGER reviewed_entities_are_not_truncated BEFORE TRUNCATE ON pass1_entity_detections
  FOR EACH STATEMENT EXECUTE FUNCTION truncate_is_refused_after_a_review();
CREATE TRIGGER reviewed_attributes_are_kept BEFORE UPDATE ON pass2_enriched_entities
  FOR EACH ROW EXECUTE FUNCTION reviewed_attributes_are_kept();
CREATE TRIGGER reviewed_attributes_are_not_deleted BEFORE DELETE ON pass2_enriched_entities
  FOR EACH ROW EXECUTE FUNCTION reviewed_attributes_are_not_deleted();
CREATE TRIGGER found_attributes_meet_their_review BEFORE INSERT ON pass2_enriched_entities
  FOR EACH ROW EXECUTE FUNCTION found_attributes_meet_their_review();
CREATE TRIGGER reviewed_attributes_are_not_truncated BEFORE TRUNCATE ON pass2_enriched_entities
  FOR EACH STATEMENT EXECUTE FUNCTION truncate_is_refused_after_a_review();
"""
_DERIVED = """'{"name": ["ingredient", "substance", "product"],
    "strength": ["strength", "daily_dose"], "dose": ["dose", "daily_dose"],
    "previous_dose": ["previous_dose"], "route": ["route", "printed_route"],
    "frequency": ["timing", "daily_dose"], "status": ["status"], "step": ["step"],
    "value": ["value", "value_text", "components", "converted", "computed_flag"],
    "unit": ["value", "components", "converted", "computed_flag"],
    "reference_range": ["reference_range", "computed_flag"], "abnormal_flag": ["printed_flag"],
    "reaction": ["reaction"],
    "entity_date": ["onset", "printed_onset", "effective", "occurrence", "performed"],
    "negated": ["clinical_status", "verification_status"],
    "temporality": ["clinical_status", "status"], "certainty": ["verification_status"]}'::jsonb"""
"""`review.fields.DERIVED` of this migration; a test compares both."""
CREATE = CREATE.replace("{derived}", _DERIVED)

DROP = """
DROP TRIGGER reviewed_attributes_are_not_truncated ON pass2_enriched_entities;
DROP TRIGGER found_attributes_meet_their_review ON pass2_enriched_entities;
DROP TRIGGER reviewed_attributes_are_not_deleted ON pass2_enriched_entities;
DROP TRIGGER reviewed_attributes_are_kept ON pass2_enriched_entities;
DROP TRIGGER reviewed_entities_are_not_truncated ON pass1_entity_detections;
DROP TRIGGER found_entity_meets_its_review ON pass1_entity_detections;
DROP TRIGGER reviewed_entity_is_not_deleted ON pass1_entity_detections;
DROP TRIGGER reviewed_entity_is_kept ON pass1_entity_detections;
DROP TRIGGER locked_fields_are_not_truncated ON locked_fields;
DROP TRIGGER locked_field_is_kept ON locked_fields;
DROP TRIGGER review_decisions_are_not_truncated ON review_decisions;
DROP TRIGGER review_decisions_are_append_only ON review_decisions;
DROP TRIGGER review_decision_locks_its_field ON review_decisions;
DROP TRIGGER review_decision_is_stamped ON review_decisions;
DROP FUNCTION found_attributes_meet_their_review(), reviewed_attributes_are_not_deleted(),
  reviewed_attributes_are_kept(), found_entity_meets_its_review(),
  reviewed_entity_is_not_deleted(), reviewed_entity_is_kept(),
  is_decided_now(uuid, text, jsonb), truncate_is_refused_after_a_review(),
  locked_field_is_kept(), review_row_is_append_only(), review_decision_locks_its_field(),
  review_decision_is_stamped();
"""
