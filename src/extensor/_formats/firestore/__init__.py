"""Reading of Firestore documents, and writing to Firestore collections."""
