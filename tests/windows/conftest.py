from hypothesis import settings

# A property says what holds, not how fast: on a busy machine a deadline fails by chance.
settings.register_profile("no deadline", deadline=None)
settings.load_profile("no deadline")
