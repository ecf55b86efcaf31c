"""How a process reaches Azure: who it is, and which storage account it uses."""
