"""What `extensor.authoring` offers to authors of types."""
