"""Make the four roles, as groups with the rights that `rights.ROLES` names."""

from __future__ import annotations

from django.contrib.auth.management import create_permissions
from django.db import migrations

ADMINISTRATOR = "administrator"
VIEW = ["view_console"]
OPERATE = [
    "upload_record", "retry_work", "cancel_job", "requeue_job", "reset_stale", "release_job",
    "pause_work", "resume_work",
]
REVIEW = ["read_phi", "review_results", "export_results"]
ROLES = {
    "viewer": VIEW,
    "operator": VIEW + OPERATE,
    "reviewer": VIEW + REVIEW,
    ADMINISTRATOR: VIEW + OPERATE + REVIEW + ["read_audit", "erase_patient"],
}
USERS = ["add_user", "change_user", "view_user", "view_group"]


def make(apps, schema_editor):
    # Permissions are else made after all migrations; the roles need them now.
    for label in ("auth", "observability"):
        config = apps.get_app_config(label)
        config.models_module = True
        create_permissions(config, apps=apps, verbosity=0)
        config.models_module = None
    Group = apps.get_model("auth", "Group")
    Permission = apps.get_model("auth", "Permission")
    for role, codenames in ROLES.items():
        group, _ = Group.objects.get_or_create(name=role)
        group.permissions.add(
            *Permission.objects.filter(
                content_type__app_label="observability", codename__in=codenames
            )
        )
        if role == ADMINISTRATOR:
            group.permissions.add(
                *Permission.objects.filter(content_type__app_label="auth", codename__in=USERS)
            )


class Migration(migrations.Migration):
    dependencies = [
        ("observability", "0002_audit_events_are_append_only"),
        ("auth", "0012_alter_user_first_name_max_length"),
        ("contenttypes", "0002_remove_content_type_name"),
    ]

    operations = [migrations.RunPython(make, migrations.RunPython.noop)]
