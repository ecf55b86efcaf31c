"""Where the workspaces of jobs are."""
