"""Runs the service until SIGTERM."""

from sis_service.execute import service

if __name__ == "__main__":
    service.run()
