"""Answers to: a task became ready here; share it, keep it, or push it to another node?"""
