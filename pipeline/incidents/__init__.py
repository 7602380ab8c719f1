"""Incidents of a provider: outage, throttling, used-up quota, refused credentials.

`call_window` reads calls, `rules` judges them. A tick of `detector` applies the rules. `lifecycle`
opens and closes incidents. `assessment` judges one record.
"""
