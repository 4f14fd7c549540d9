"""TensorDigraph: a directed graph with features of its nodes and edges, or a batch of graphs."""
