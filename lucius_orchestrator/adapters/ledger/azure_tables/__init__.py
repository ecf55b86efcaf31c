"""The ledger on Azure Table Storage: the table ledger on the tables of a storage account.

names       how the tables are called
properties  how the values of a row are spelled
faults      what an answer of the service means
tables      the calls
clock       what time it is there
ledger      all of it, opened
"""

from lucius_orchestrator.adapters.ledger.azure_tables.ledger import AzureTablesLedger
from lucius_orchestrator.adapters.ledger.azure_tables.names import TableNames

__all__ = ["AzureTablesLedger", "TableNames"]
