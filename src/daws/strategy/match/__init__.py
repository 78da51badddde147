"""Answers to: may this executor run this task?"""
