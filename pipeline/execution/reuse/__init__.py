"""The reuse of earlier results of the same bytes and the same owner (requirement 39).

A work item whose prompt, conditions and bytes are those of an earlier item gets the earlier reply.
All rules then judge that reply as if the provider had just sent it, so the patient check, the flags
and the new ids are those of a fresh extraction.
"""
