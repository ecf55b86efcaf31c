"""Runs the service until SIGTERM."""

from {{ cookiecutter.package_name }}.execute import service

if __name__ == "__main__":
    service.run()
