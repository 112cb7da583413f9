"""Matrix products as generated code: operands packed into strips, one register tile at a time (Goto & van de Geijn, 2008)."""
