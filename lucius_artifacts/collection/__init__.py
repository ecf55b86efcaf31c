"""Deletion: what nobody needs goes, and never what somebody needs."""

from lucius_artifacts.collection.collector import Collector
from lucius_artifacts.collection.explaining import Candidate, Explainer
from lucius_artifacts.collection.schedule import Report, Schedule

__all__ = ["Candidate", "Collector", "Explainer", "Report", "Schedule"]
