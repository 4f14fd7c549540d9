"""What the project is made of, written from the code: its public names, and its floors."""
