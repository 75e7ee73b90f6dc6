"""What every layer may use: errors, exact money, text, the clock, settings, logs, metrics. Imports nothing of ours."""
