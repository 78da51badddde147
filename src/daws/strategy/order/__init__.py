"""Answers to: which ready task runs first?"""
