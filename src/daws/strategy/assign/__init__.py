"""Answers to: which node receives each submitted task?"""
