"""`lucius demo`: the control plane, three services and one job, each in a process of its own."""
