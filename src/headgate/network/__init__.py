"""Sites: processes that hold views and feed each other, how a plan is put on them, and how they fare."""
