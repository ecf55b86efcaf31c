"""Runs the service until SIGTERM."""

from ocr_service.execute import service

if __name__ == "__main__":
    service.run()
