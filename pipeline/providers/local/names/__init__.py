"""The names of diseases, drugs and procedures: word lists, and where a name is a mention."""
