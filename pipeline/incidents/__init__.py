"""Incidents of a provider: outage, throttling, used-up quota, refused credentials.

`rules` judges calls. `detector` opens and closes incidents. `assessment` judges one record.
"""
