"""What people look at: the terminal, pictures, explanations. Nothing here computes a result that is not
there.
"""
