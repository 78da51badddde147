"""Answers to: when does a dedicated task become shared?"""
