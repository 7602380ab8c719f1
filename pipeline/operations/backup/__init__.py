"""Backup and restore: one snapshot of the database with every stored file, and a checked way back.

A backup is a folder with the dump of the database, the stored files, a list of the files, and a
manifest. The manifest is written last, so a folder without a manifest is no backup.

django-dbbackup was rejected. It dumps the database and the files at different moments, and it
checks neither the files nor the restored rows.
"""
