"""Answers to: which moved data is kept?"""
