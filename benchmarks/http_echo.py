"""The peer: a FastAPI route that answers with the JSON that it was sent, and does nothing else."""

import sys
from typing import Any

import uvicorn
from fastapi import FastAPI

app = FastAPI()


@app.post("/echo")
async def echo(body: dict[str, Any]) -> dict[str, Any]:
    return body


if __name__ == "__main__":
    uvicorn.run(app, port=int(sys.argv[1]), log_level="error", access_log=False)
