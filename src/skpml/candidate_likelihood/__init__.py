"""A likelihood for candidate labels: a probability for every candidate, learnt and chosen without true labels."""
