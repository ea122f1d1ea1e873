"""A network of sites simulated: when each view has its results, without a process for each site."""
