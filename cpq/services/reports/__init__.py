"""Reports: figures of the business."""
