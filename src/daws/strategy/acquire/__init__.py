"""Answers to: which pilots are asked for, how many, how large, for how long, and where?"""
