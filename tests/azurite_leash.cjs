// Loaded into Azurite: it ends with whoever started it, who may be killed and stop nothing.
process.stdin.on("end", () => process.exit(0)).on("error", () => process.exit(0)).resume();
