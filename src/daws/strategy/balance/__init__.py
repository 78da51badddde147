"""Answers to: who moves work, when, and how much?"""
