"""Answers to: what changes while running?"""
