"""Why a record failed: the tree from record to call, its first line, its time line, its pages."""
