"""The rules, pure by path: no database, file, clock, thread, log or setting is used below this folder."""
