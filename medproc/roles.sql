-- Creates the two roles of medproc and the extension vector, and gives the present database to the owner role.
-- Run as a superuser in medproc's own database; the file can run again.
-- medproc_owner owns the tables and runs `manage.py migrate`. medproc_app is the role of console,
-- workers and scheduler; `migrate` grants the role its privileges on the tables.
BEGIN;
-- The code search needs pgvector, and only a superuser can create the extension.
DO $$
BEGIN
  IF NOT EXISTS (SELECT FROM pg_available_extensions WHERE name = 'vector') THEN
    RAISE EXCEPTION 'PostgreSQL has no pgvector: install pgvector on the server (on Debian the package '
      'postgresql-18-pgvector), then run this file again';
  END IF;
END $$;
CREATE EXTENSION IF NOT EXISTS vector;
DO $$
DECLARE
  wanted text;
  object record;
BEGIN
  FOREACH wanted IN ARRAY ARRAY['medproc_owner', 'medproc_app'] LOOP
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = wanted) THEN
      EXECUTE format('CREATE ROLE %I LOGIN', wanted);
    END IF;
    EXECUTE format(
      'ALTER ROLE %I LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS', wanted);
  END LOOP;
  EXECUTE format('ALTER DATABASE %I OWNER TO medproc_owner', current_database());
  -- Temporary tables would let the application role hide a table behind one of its own.
  EXECUTE format('REVOKE ALL ON DATABASE %I FROM PUBLIC', current_database());
  EXECUTE format('GRANT CONNECT ON DATABASE %I TO medproc_app', current_database());
  REVOKE CREATE ON SCHEMA public FROM PUBLIC;
  -- A database of an earlier version belongs to the role that created it. A sequence of a column
  -- follows its table.
  FOR object IN
    SELECT format('TABLE %s', c.oid::regclass) AS name FROM pg_class c
    WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p')
      AND c.relowner <> 'medproc_owner'::regrole
    UNION ALL
    SELECT format('FUNCTION %s', p.oid::regprocedure) FROM pg_proc p
    WHERE p.pronamespace = 'public'::regnamespace AND p.proowner <> 'medproc_owner'::regrole
      -- The functions of an extension stay with the extension.
      AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_proc'::regclass
        AND d.objid = p.oid AND d.deptype = 'e')
  LOOP
    EXECUTE format('ALTER %s OWNER TO medproc_owner', object.name);
  END LOOP;
END $$;
COMMIT;
