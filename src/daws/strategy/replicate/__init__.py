"""Answers to: when does a second copy of a task run?"""
