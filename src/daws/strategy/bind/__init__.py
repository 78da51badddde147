"""Answers to: is a task tied to a pilot before that pilot runs?"""
