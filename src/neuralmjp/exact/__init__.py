"""The exact engine: the likelihood of a hidden jump process with few states is tractable, and nothing beats it.

layout       all series as a few long lanes
transitions  exp(F t) for many gaps at once
chain        forward and backward passes, and the derivative they give
model        rates, emission and initial law as one function of one vector
evidence     a data set as that function needs it
labels       the same likelihood for labels, in NumPy: no compiling
blocks       the same for more data than fit into memory at once
starts, em   starting values; expectation maximisation from many starts
climb        to the top of a smooth hill
fit          the maximum
information  how sure: curvature at the top; report, alternatives (profile, bootstrap)
decode       what the hidden process did
"""
